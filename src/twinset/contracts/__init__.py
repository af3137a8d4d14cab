"""What was asked, planned and made: recipes, plan, receipt, index, card, Croissant."""
