// Sets the chosen theme before the page is painted.
{
  let theme = null;
  try {
    theme = localStorage.getItem('theme');
  } catch { /* storage is off */ }
  if (theme === 'light' || theme === 'dark') {
    document.documentElement.dataset.theme = theme;
  }
}
