"""Losses on features of images and texts: contrastive objectives, regularisers, gathering and gradient caching."""
