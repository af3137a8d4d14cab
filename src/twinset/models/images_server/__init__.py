"""Pictures drawn and edited on a server that speaks OpenAI's images API, such as vLLM-Omni."""
