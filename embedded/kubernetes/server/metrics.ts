/** Metrics of the server, under the names of kube-apiserver. */
import { Counter, gaugesIn, Gauge, Histogram, openRegistry } from '../../../kit/sys/metrics.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Engine } from '../core/engine.ts'
import { isTrue, parseResourcePath, queryOf } from '../core/request.ts'

export interface RequestMetrics {
  /** Counts a request; call the returned function with its status when it has ended. */
  began(method: string, url: string): (status: number) => void
  readonly contentType: string
  text(): Promise<string>
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export function openMetrics(engine: Engine, clock: Clock): RequestMetrics {
  const registry = openRegistry({ isProcessWide: true })
  const registers = [registry]
  const requests = new Counter({
    name: 'apiserver_request_total',
    help: 'Requests by verb, resource and status code.',
    labelNames: ['verb', 'resource', 'code'],
    registers,
  })
  const seconds = new Histogram({
    name: 'apiserver_request_duration_seconds',
    help: 'How long requests took, watches left out.',
    labelNames: ['verb', 'resource'],
    buckets: SECONDS,
    registers,
  })
  const gauge = gaugesIn(registry)
  gauge('apiserver_longrunning_requests', 'Watches that are open.', () => engine.watches.count())
  new Gauge({
    name: 'apiserver_storage_objects',
    help: 'Objects by resource.',
    labelNames: ['resource'],
    registers,
    collect() {
      for (const [key, table] of engine.store.tables()) this.set({ resource: resourceName(key) }, table.size())
    },
  })
  return {
    began(method, url) {
      const startedAt = clock.monotonicMilliseconds()
      const isWatch = isTrue(queryOf(url), 'watch')
      const verb = isWatch ? 'WATCH' : method
      const resource = resourceOf(engine, url)
      return (status) => {
        requests.inc({ verb, resource, code: String(status) })
        if (!isWatch) seconds.observe({ verb, resource }, (clock.monotonicMilliseconds() - startedAt) / 1000)
      }
    },
    contentType: registry.contentType,
    text: () => registry.metrics(),
  }
}

const resourceName = (storageKey: string): string => {
  const [group = '', resource = ''] = storageKey.split('/')
  return group === '' ? resource : `${resource}.${group}`
}

/** Only names that exist, to limit the number of series. */
function resourceOf(engine: Engine, url: string): string {
  try {
    const path = parseResourcePath(url.split('?')[0] ?? '')
    return path && engine.registry.find(path.group, path.version, path.resource)
      ? resourceName(`${path.group}/${path.resource}`)
      : ''
  } catch {
    return ''
  }
}
