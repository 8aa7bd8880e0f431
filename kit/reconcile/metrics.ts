/** Metrics of controllers, under the names that controller-runtime gave them, so that dashboards and alerts fit. */
import { Counter, Gauge, Histogram, type Registry } from '../sys/metrics.ts'

export interface QueueMetrics {
  readonly adds: Counter<'name'>
  readonly retries: Counter<'name'>
  readonly queueSeconds: Histogram<'name'>
  readonly workSeconds: Histogram<'name'>
  /** Tells how to look at a queue when the metrics are read. Instants are monotonic milliseconds. */
  observe(
    name: string,
    look: () => { readonly depth: number; readonly since: readonly number[]; readonly now: number },
  ): void
}

export interface ControllerMetrics extends QueueMetrics {
  readonly reconciles: Counter<'controller' | 'result'>
  readonly errors: Counter<'controller'>
  readonly panics: Counter<'controller'>
  readonly reconcileSeconds: Histogram<'controller'>
  readonly workers: Gauge<'controller'>
  readonly activeWorkers: Gauge<'controller'>
}

const SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60]

export function openControllerMetrics(registry: Registry): ControllerMetrics {
  const registers = [registry]
  const looks = new Map<string, () => { depth: number; since: readonly number[]; now: number }>()
  const age = (name: string, help: string, of: (ages: readonly number[]) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['name'],
      registers,
      collect() {
        for (const [queue, look] of looks) {
          const { since, now } = look()
          this.set({ name: queue }, of(since.map((start) => (now - start) / 1000)))
        }
      },
    })
  new Gauge({
    name: 'workqueue_depth',
    help: 'Keys that wait for a worker',
    labelNames: ['name'],
    registers,
    collect() {
      for (const [queue, look] of looks) this.set({ name: queue }, look().depth)
    },
  })
  age('workqueue_unfinished_work_seconds', 'Seconds of work in progress', (ages) =>
    ages.reduce((sum, each) => sum + each, 0),
  )
  age('workqueue_longest_running_processor_seconds', 'Seconds that the longest turn has been running', (ages) =>
    Math.max(0, ...ages),
  )
  return {
    observe: (name, look) => void looks.set(name, look),
    adds: new Counter({ name: 'workqueue_adds_total', help: 'Keys added', labelNames: ['name'], registers }),
    retries: new Counter({
      name: 'workqueue_retries_total',
      help: 'Keys added again after a failure',
      labelNames: ['name'],
      registers,
    }),
    queueSeconds: new Histogram({
      name: 'workqueue_queue_duration_seconds',
      help: 'Seconds that a key waited for a worker',
      labelNames: ['name'],
      buckets: SECONDS,
      registers,
    }),
    workSeconds: new Histogram({
      name: 'workqueue_work_duration_seconds',
      help: 'Seconds that a key was worked on',
      labelNames: ['name'],
      buckets: SECONDS,
      registers,
    }),
    reconciles: new Counter({
      name: 'controller_runtime_reconcile_total',
      help: 'Reconciliations by result',
      labelNames: ['controller', 'result'],
      registers,
    }),
    errors: new Counter({
      name: 'controller_runtime_reconcile_errors_total',
      help: 'Reconciliations that failed',
      labelNames: ['controller'],
      registers,
    }),
    panics: new Counter({
      name: 'controller_runtime_reconcile_panics_total',
      help: 'Reconciliations that failed by a bug',
      labelNames: ['controller'],
      registers,
    }),
    reconcileSeconds: new Histogram({
      name: 'controller_runtime_reconcile_time_seconds',
      help: 'Seconds per reconciliation',
      labelNames: ['controller'],
      buckets: SECONDS,
      registers,
    }),
    workers: new Gauge({
      name: 'controller_runtime_max_concurrent_reconciles',
      help: 'Workers',
      labelNames: ['controller'],
      registers,
    }),
    activeWorkers: new Gauge({
      name: 'controller_runtime_active_workers',
      help: 'Workers that are busy',
      labelNames: ['controller'],
      registers,
    }),
  }
}
