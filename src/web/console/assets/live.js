// Keeps an open conversation up to date. Without it every page works by reloading.
