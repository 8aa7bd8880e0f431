/** Metrics of the front end. Labels are limited to operations, actions, classes of statuses and codes of refusals. */
import { Counter, gaugesIn, Gauge, type Registry } from '../../kit/sys/metrics.ts'
import type { S3Operation } from '../../kit/s3/operation.ts'
import type { Bounds } from './cgroup.ts'
import type { EngineCounts } from './engines.ts'
import { type Isolation, ISOLATIONS } from './isolation.ts'
import type { Tenants } from './tenants.ts'

export interface FrontEndMetrics {
  admitted(operation: Pick<S3Operation, 'name' | 'rule'>): void
  answered(status: number): void
  refused(code: string): void
  received(bytes: number): void
  sent(bytes: number): void
}

export interface MetricSources {
  readonly tenants: Pick<Tenants, 'all'>
  readonly engines: { readonly counts: () => EngineCounts }
  readonly isolation: Isolation
  readonly bounds: Bounds['kind']
  /** Number of buckets of an earlier version that belong to no known tenant. */
  readonly unknownBuckets: () => number
}

export function openFrontEndMetrics(registry: Registry, watched: MetricSources): FrontEndMetrics {
  const { tenants, engines } = watched
  const registers = [registry]
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Counter({ name, help, labelNames, registers })
  const requests = counter(
    'svccloud_object_storage_requests_total',
    'Requests that were handed to the engine, by operation and by what it does',
    ['operation', 'action'],
  )
  const answers = new Counter({
    name: 'svccloud_object_storage_responses_total',
    help: 'Answers of the engine, by class of status',
    labelNames: ['class'],
    registers,
  })
  const refusals = new Counter({
    name: 'svccloud_object_storage_refusals_total',
    help: 'Requests that the interface refused, by code',
    labelNames: ['code'],
    registers,
  })
  const received = counter('svccloud_object_storage_received_bytes_total', 'Bytes of bodies from clients')
  const sent = counter('svccloud_object_storage_sent_bytes_total', 'Bytes of bodies to clients')
  const gauge = gaugesIn(registry)
  gauge('svccloud_object_storage_up', '1 while no engine of a tenant fails', () =>
    engines.counts().faulty === 0 ? 1 : 0,
  )
  watchEngines(registry, watched)
  gauge('svccloud_object_storage_used_bytes', 'What all tenants store, at most', () =>
    tenants.all().reduce((sum, { usage }) => sum + usage.bytes(), 0),
  )
  new Gauge({
    name: 'svccloud_object_storage_tenants',
    help: 'Tenants, by whether they may add anything',
    labelNames: ['state'],
    registers,
    collect() {
      const all = tenants.all()
      const suspended = all.filter(({ isSuspended }) => isSuspended).length
      this.set({ state: 'suspended' }, suspended)
      this.set({ state: 'active' }, all.length - suspended)
    },
  })
  return {
    admitted: ({ name, rule }) => requests.inc({ operation: name, action: rule.class }),
    answered: (status) => answers.inc({ class: `${Math.floor(status / 100)}xx` }),
    refused: (code) => refusals.inc({ code }),
    received: (bytes) => received.inc(bytes),
    sent: (bytes) => sent.inc(bytes),
  }
}

function watchEngines(registry: Registry, { engines, isolation, bounds, unknownBuckets }: MetricSources): void {
  const registers = [registry]
  const gauge = gaugesIn(registry)
  gauge('svccloud_object_storage_engines', 'Engines that run, each of one tenant', () => engines.counts().live)
  gauge(
    'svccloud_object_storage_tenants_failing',
    'Tenants whose engine does not start or answers wrongly',
    () => engines.counts().faulty,
  )
  gauge(
    'svccloud_object_storage_unknown_buckets',
    'Buckets of an earlier version that belong to no tenant',
    unknownBuckets,
  )
  const total = (name: string, help: string, read: () => number) =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset()
        this.inc(read())
      },
    })
  total('svccloud_object_storage_engine_starts_total', 'Engines that were started', () => engines.counts().starts)
  total(
    'svccloud_object_storage_engine_failures_total',
    'Engines that ended by themselves, did not start or answered wrongly',
    () => engines.counts().failures,
  )
  total(
    'svccloud_object_storage_users_healed_total',
    'Engines that were started anew because their file of users was gone',
    () => engines.counts().healed,
  )
  const kinds = new Gauge({
    name: 'svccloud_object_storage_isolation',
    help: '1 for how far engines of tenants are kept apart',
    labelNames: ['kind'],
    registers,
  })
  const limits = new Gauge({
    name: 'svccloud_object_storage_bounds',
    help: '1 for what bounds the memory and the threads of each engine',
    labelNames: ['kind'],
    registers,
  })
  for (const kind of ['cgroup', 'rlimit']) limits.set({ kind }, kind === bounds ? 1 : 0)
  for (const kind of ISOLATIONS) kinds.set({ kind }, kind === isolation.kind ? 1 : 0)
}
