/** One prom-client registry per process. Names follow the field's conventions; labels are bounded sets, never ids. */
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'

export { Counter, Gauge, Histogram } from 'prom-client'
export type { Registry } from 'prom-client'

/** `isProcessWide`: includes the metrics of the process itself. `build`: the program and its version. */
export function openRegistry({
  isProcessWide,
  build,
}: {
  readonly isProcessWide: boolean
  readonly build?: { readonly component: string; readonly version: string }
}): Registry {
  const registry = new Registry()
  if (isProcessWide) collectDefaultMetrics({ register: registry })
  if (build !== undefined)
    new Gauge({
      name: 'svccloud_build_info',
      help: 'Always 1; the labels say what runs',
      labelNames: ['component', 'version'],
      registers: [registry],
    }).set({ ...build }, 1)
  return registry
}

/** Makes gauges without labels, whose value is read at each scrape. */
export const gaugesIn =
  (registry: Registry) =>
  (name: string, help: string, read: () => number | Promise<number>): void => {
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        this.set(await read())
      },
    })
  }
