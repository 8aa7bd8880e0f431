/** The lists of nouns: their addresses and headings. */
export const NOUNS = [
  ['/servers', 'Servers'],
  ['/server-groups', 'Server groups'],
  ['/ssh-keys', 'SSH keys'],
  ['/init-scripts', 'Init scripts'],
  ['/storages', 'Storages'],
  ['/snapshots', 'Snapshots'],
  ['/backups', 'Backups'],
  ['/images', 'Images'],
  ['/networks', 'Networks'],
  ['/routers', 'Routers'],
  ['/floating-ips', 'Floating IPs'],
] as const
