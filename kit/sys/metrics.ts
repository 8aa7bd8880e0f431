/** One prom-client registry per process. Names follow the field's conventions; labels are bounded sets, never ids. */
import { collectDefaultMetrics, Registry } from 'prom-client'

export { Counter, Gauge, Histogram } from 'prom-client'
export type { Registry } from 'prom-client'

/** `isProcessWide`: with the figures of the process itself. */
export function openRegistry(options: { readonly isProcessWide: boolean }): Registry {
  const registry = new Registry()
  if (options.isProcessWide) collectDefaultMetrics({ register: registry })
  return registry
}
