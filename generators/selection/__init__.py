"""Which of the scored negative captions are kept (BiVLC, section 5.2; SugarCrepe's adversarial refinement)."""
