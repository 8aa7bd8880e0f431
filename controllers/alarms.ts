/** Metrics for conditions that need an operator; alerts watch them. Only the leader of a shard knows the values, for
 *  its own zones; every other replica reports 0. */
import type { KubeconfigsAwaiting } from '../db/kubeconfig/index.ts'
import type { SinkCounts } from '../db/audit-sink/index.ts'
import type { DeliveryCounts } from '../db/webhook/index.ts'
import { NODE_STATES } from '../domain/node/rules.ts'
import type { KubeObject } from '../kit/kube/object.ts'
import type { Clock } from '../kit/sys/clock.ts'
import { gaugesIn, Gauge, type Registry } from '../kit/sys/metrics.ts'
import type { NodeSpec, NodeStatus } from '../resources/node/index.ts'
import type { ServerSpec, ServerStatus } from '../resources/server/index.ts'
import type { BillingProgress } from './nouns/billing/index.ts'
import type { SweepResult } from './kit/intents/index.ts'
import type { ClaimSweep } from './nouns/claim/index.ts'
import type { OperationObject } from './kit/operation/record.ts'
import { DOWNTIME_EXCEEDED } from './nouns/server/index.ts'

export interface AlarmSources {
  readonly nodes: () => readonly KubeObject<NodeSpec, NodeStatus>[]
  readonly servers: () => readonly KubeObject<ServerSpec, ServerStatus>[]
  /** Running operations, and those that ended within the last hour. */
  readonly operations: () => readonly OperationObject[]
  /** Objects on hosts whose owner is missing, by kind. */
  readonly unowned: () => ReadonlyMap<string, number>
  /** Objects that were deleted without their controllers and wait for the sweep rate, by kind. */
  readonly sweepsWaiting: () => ReadonlyMap<string, number>
}

/** Events reported to the alarms, because their values cannot be read on demand. */
export interface Alarms {
  readonly noteSweep: (result: SweepResult) => void
  readonly noteClaims: (sweep: ClaimSweep) => void
  readonly noteBilling: (progress: BillingProgress) => void
  /** When the newest checkpoint of the audit log was written. */
  readonly noteCheckpoint: (at: Date) => void
  readonly noteKubeconfigs: (awaiting: KubeconfigsAwaiting) => void
  readonly noteDeliveries: (counts: DeliveryCounts) => void
  readonly noteAuditSinks: (counts: SinkCounts) => void
}

export function openAlarms(
  { nodes, servers, operations, unowned, sweepsWaiting }: AlarmSources,
  registry: Registry,
  clock: Pick<Clock, 'now'>,
): Alarms {
  const gauge = gaugesIn(registry)
  let checkpointAt: Date | undefined
  gauge(
    'svccloud_audit_checkpoint_age_seconds',
    'Since the newest checkpoint of the audit log in object storage; 0 where there is none to be',
    () => (checkpointAt === undefined ? 0 : (clock.now().getTime() - checkpointAt.getTime()) / 1_000),
  )
  new Gauge({
    name: 'svccloud_nodes',
    help: 'Nodes by state',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const state of NODE_STATES)
        this.set({ state }, nodes().filter(({ status }) => (status?.state ?? 'provisioning') === state).length)
    },
  })
  gauge(
    'svccloud_deletions_overdue',
    'Servers whose deletion goes on beyond its deadline',
    () => servers().filter(isOverdue).length,
  )
  gauge(
    'svccloud_downtimes_exceeded',
    'Moves of the last hour whose guest stood still for longer than its migration policy allows',
    () => operations().filter(({ status }) => status?.events?.some(({ kind }) => kind === DOWNTIME_EXCEEDED)).length,
  )
  openMissingGauges({ unowned, sweepsWaiting }, registry)
  const unknownIntents = new Gauge({
    name: 'svccloud_change_intents_unknown',
    help: 'Change intents of the last sweep that no noun has registered for',
    registers: [registry],
  })
  return {
    noteSweep: ({ unknown }) => unknownIntents.set(unknown),
    noteClaims: openClaimGauges(registry),
    noteBilling: openBillingGauges(registry),
    noteCheckpoint: (at) => (checkpointAt = at),
    noteKubeconfigs: openKubeconfigGauges(registry, clock),
    noteDeliveries: openDeliveryGauges(registry),
    noteAuditSinks: openSinkGauges(registry),
  }
}

/** Gauges of missing owners, and of removals that wait. */
function openMissingGauges(
  { unowned, sweepsWaiting }: Pick<AlarmSources, 'unowned' | 'sweepsWaiting'>,
  registry: Registry,
): void {
  new Gauge({
    name: 'svccloud_unowned',
    help: 'What hosts hold for an owner that is missing and was not deleted, by kind: it is kept',
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      for (const [kind, count] of unowned()) this.set({ kind }, count)
    },
  })
  new Gauge({
    name: 'svccloud_sweeps_waiting',
    help: 'What was deleted past its controllers and waits, because sweeps have taken as many of the kind already',
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [kind, count] of sweepsWaiting()) this.set({ kind }, count)
    },
  })
}

function openKubeconfigGauges(registry: Registry, clock: Pick<Clock, 'now'>): Alarms['noteKubeconfigs'] {
  const gauge = gaugesIn(registry)
  let awaiting: KubeconfigsAwaiting = { count: 0 }
  gauge(
    'svccloud_kubeconfigs_awaiting',
    'Credentials in kubeconfigs that have ended and still work: their cluster does not remove them',
    () => awaiting.count,
  )
  gauge('svccloud_kubeconfigs_awaiting_seconds', 'Since the first of them ended; 0 while there is none', () =>
    awaiting.since === undefined ? 0 : (clock.now().getTime() - awaiting.since.getTime()) / 1_000,
  )
  return (found) => (awaiting = found)
}

function openDeliveryGauges(registry: Registry): Alarms['noteDeliveries'] {
  const gauge = gaugesIn(registry)
  let counts: DeliveryCounts = { pending: 0, lateSeconds: 0, paused: 0 }
  gauge('svccloud_webhook_deliveries_pending', 'Events that wait to be sent to webhooks', () => counts.pending)
  gauge(
    'svccloud_webhook_delivery_late_seconds',
    'Since the first attempt to send an event to a webhook was due; 0 while none is late',
    () => counts.lateSeconds,
  )
  gauge('svccloud_webhooks_paused', 'Webhooks that were paused because nothing could be delivered', () => counts.paused)
  return (found) => (counts = found)
}

function openSinkGauges(registry: Registry): Alarms['noteAuditSinks'] {
  const gauge = gaugesIn(registry)
  let counts: SinkCounts = { lateSeconds: 0, failing: 0 }
  gauge(
    'svccloud_audit_sink_late_seconds',
    'Age of the oldest audit entry that was not pushed, of sinks that do not fail; 0 while there is none',
    () => counts.lateSeconds,
  )
  gauge('svccloud_audit_sinks_failing', 'Audit sinks whose receiver takes no batches', () => counts.failing)
  return (found) => (counts = found)
}

function openClaimGauges(registry: Registry): (sweep: ClaimSweep) => void {
  const lost = new Gauge({
    name: 'svccloud_claims_lost',
    help: 'Names, addresses, quota and room that are claimed for what is missing and was not deleted, by kind: kept',
    labelNames: ['kind'],
    registers: [registry],
  })
  const stopped = new Gauge({
    name: 'svccloud_sweeps_stopped',
    help: '1 while so much has gone missing at once that nothing is taken away for being missing',
    registers: [registry],
  })
  return (sweep) => {
    for (const [kind, count] of Object.entries(sweep.lost)) lost.set({ kind }, count)
    stopped.set(sweep.isStopped ? 1 : 0)
  }
}

/** Each gauge keeps the value that was reported last. */
function openBillingGauges(registry: Registry): (progress: BillingProgress) => void {
  const gauges = BILLING_GAUGES.map(({ of, ...gauge }) => ({
    of,
    gauge: new Gauge({ ...gauge, registers: [registry] }),
  }))
  return (progress) => {
    for (const { of, gauge } of gauges) {
      const value = progress[of]
      if (value !== undefined) gauge.set(value)
    }
  }
}

const BILLING_GAUGES: readonly { of: keyof BillingProgress; name: string; help: string }[] = [
  {
    of: 'meteringLagSeconds',
    name: 'svccloud_metering_lag_seconds',
    help: 'Since the end of the last hour that is metered',
  },
  {
    of: 'invoicesWaiting',
    name: 'svccloud_invoices_waiting',
    help: 'Accounts that have no invoice yet of a month that is over',
  },
  {
    of: 'invoicesFailed',
    name: 'svccloud_invoices_failed',
    help: 'Those of them of which an attempt has failed',
  },
  {
    of: 'invoicesUnsent',
    name: 'svccloud_invoices_unsent',
    help: 'Invoices that the payment processor does not charge yet',
  },
  {
    of: 'invoicesUnsentFailed',
    name: 'svccloud_invoices_unsent_failed',
    help: 'Those of them of which an attempt has failed',
  },
  {
    of: 'paymentEventsWaiting',
    name: 'svccloud_payment_events_waiting',
    help: 'Events of the payment processor that are not used yet',
  },
  {
    of: 'paymentDifferences',
    name: 'svccloud_payment_differences',
    help: 'What the last comparison of the ledger with the payment processor found',
  },
]

const isOverdue = ({ status }: KubeObject<ServerSpec, ServerStatus>): boolean =>
  status?.state === 'deleting' && status.operation?.status === 'failed'
