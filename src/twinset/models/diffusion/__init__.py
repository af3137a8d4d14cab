"""Images by latent diffusion: SDXL, Stable Diffusion and small models of their kind, through diffusers."""
