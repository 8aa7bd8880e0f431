export * from './routes.ts'
export * from './stored.ts'
