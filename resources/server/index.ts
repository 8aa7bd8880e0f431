/** Servers: virtual machines of an account. */
export * from './routes.ts'
export * from './stored.ts'
