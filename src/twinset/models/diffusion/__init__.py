"""Images drawn and edited by pipelines of diffusers, of an allow-list of classes."""
