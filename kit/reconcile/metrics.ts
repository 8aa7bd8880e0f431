/** Metrics of controllers, under the names of controller-runtime, so that dashboards and alerts fit. */
import { Counter, Gauge, Histogram, type Registry } from '../sys/metrics.ts'

/** A queue at one instant. Instants are monotonic milliseconds. */
export interface QueueLook {
  readonly depth: number
  /** Since when each key has been processed. */
  readonly since: readonly number[]
  readonly now: number
}

export interface QueueMetrics {
  readonly adds: Counter<'name'>
  readonly retries: Counter<'name'>
  readonly queueSeconds: Histogram<'name'>
  readonly workSeconds: Histogram<'name'>
  /** Adds a queue to the gauges; `look` is called when the metrics are read. */
  observe(name: string, look: () => QueueLook): void
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
  return { ...openQueueMetrics(registry), ...openReconcileMetrics(registry) }
}

function openQueueMetrics(registry: Registry): QueueMetrics {
  const labelled = { labelNames: ['name' as const], registers: [registry] }
  const timed = { ...labelled, buckets: SECONDS }
  return {
    observe: openQueueGauges(registry),
    adds: new Counter({ ...labelled, name: 'workqueue_adds_total', help: 'Keys added' }),
    retries: new Counter({ ...labelled, name: 'workqueue_retries_total', help: 'Keys added again after a failure' }),
    queueSeconds: new Histogram({
      ...timed,
      name: 'workqueue_queue_duration_seconds',
      help: 'Seconds that a key waited for a worker',
    }),
    workSeconds: new Histogram({
      ...timed,
      name: 'workqueue_work_duration_seconds',
      help: 'Seconds that a key was worked on',
    }),
  }
}

/** Gauges that read every queue when they are collected. */
function openQueueGauges(registry: Registry): QueueMetrics['observe'] {
  const looks = new Map<string, Parameters<QueueMetrics['observe']>[1]>()
  const gauge = (name: string, help: string, valueOf: (look: QueueLook) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['name'],
      registers: [registry],
      collect() {
        for (const [queue, look] of looks) this.set({ name: queue }, valueOf(look()))
      },
    })
  const ages = ({ since, now }: QueueLook) => since.map((start) => (now - start) / 1000)
  gauge('workqueue_depth', 'Keys that wait for a worker', ({ depth }) => depth)
  gauge('workqueue_unfinished_work_seconds', 'Seconds of work in progress', (look) =>
    ages(look).reduce((sum, each) => sum + each, 0),
  )
  gauge('workqueue_longest_running_processor_seconds', 'Seconds that the longest turn has been running', (look) =>
    Math.max(0, ...ages(look)),
  )
  return (name, look) => void looks.set(name, look)
}

function openReconcileMetrics(registry: Registry): Omit<ControllerMetrics, keyof QueueMetrics> {
  const labelled = { labelNames: ['controller' as const], registers: [registry] }
  return {
    reconciles: new Counter({
      name: 'controller_runtime_reconcile_total',
      help: 'Reconciliations by result',
      labelNames: ['controller', 'result'],
      registers: [registry],
    }),
    errors: new Counter({
      ...labelled,
      name: 'controller_runtime_reconcile_errors_total',
      help: 'Reconciliations that failed',
    }),
    panics: new Counter({
      ...labelled,
      name: 'controller_runtime_reconcile_panics_total',
      help: 'Reconciliations that failed by a bug',
    }),
    reconcileSeconds: new Histogram({
      ...labelled,
      name: 'controller_runtime_reconcile_time_seconds',
      help: 'Seconds per reconciliation',
      buckets: SECONDS,
    }),
    workers: new Gauge({ ...labelled, name: 'controller_runtime_max_concurrent_reconciles', help: 'Workers' }),
    activeWorkers: new Gauge({
      ...labelled,
      name: 'controller_runtime_active_workers',
      help: 'Workers that are busy',
    }),
  }
}
