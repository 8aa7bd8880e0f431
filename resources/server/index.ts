/** Servers: virtual machines of an account. */
export * from './firewall.ts'
export * from './interfaces.ts'
export * from './managed.ts'
export * from './managed-by.ts'
export * from './routes.ts'
export * from './stored.ts'
