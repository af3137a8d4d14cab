"""What words alone tell: how well a linear model knows negative captions without their images, and what it leaves."""
