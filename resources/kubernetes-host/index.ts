/** Hosts of the control planes of managed Kubernetes clusters, one per region, for operators. */
export * from './routes.ts'
export * from './stored.ts'
