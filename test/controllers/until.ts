/** Waiting for what controllers bring about. */
export { until } from '../eventually.ts'
