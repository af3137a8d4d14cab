"""Language models behind one protocol: on servers that speak OpenAI's API, or in this process."""
