export * from './configuration.ts'
export * from './metrics.ts'
export * from './routes.ts'
export * from './stored.ts'
