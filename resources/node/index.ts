/** Nodes: hypervisor hosts. */
export * from './routes.ts'
export * from './stored.ts'
