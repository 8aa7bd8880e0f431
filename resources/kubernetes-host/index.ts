/** What hosts the control planes of managed Kubernetes clusters, one in each region, for operators. */
export * from './routes.ts'
export * from './stored.ts'
