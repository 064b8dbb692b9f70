"""What people look at: figures, explanations, exploration, the app, pages and commands."""
