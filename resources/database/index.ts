export * from './managed.ts'
export * from './routes.ts'
export * from './stored.ts'
