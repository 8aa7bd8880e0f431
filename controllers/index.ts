/** THE list of controllers, and how they run. Built from parts only, so that tests and the simulation can build the
 *  same in one process. */
import { defined } from '../domain/defined.ts'
import type { ObjectStorageOffer } from '../integrations/object-storage/configuration.ts'
import type { KubeObject, ResourceType } from '../kit/kube/object.ts'
import type { PaymentProcessor } from '../integrations/payments/processor.ts'
import { openEventRecorder } from '../kit/reconcile/events.ts'
import { type Controller, openController } from '../kit/reconcile/loop.ts'
import type { ControllerMetrics } from '../kit/reconcile/metrics.ts'
import { commitLastChange, type IntentHandlers, runIntentSweeper, type SweepResult } from './kit/intents/index.ts'
import { type ClaimSweep, runClaimSweeper } from './nouns/claim/index.ts'
import { backupController } from './nouns/backup/index.ts'
import type { BackupAccess } from './kit/backup-key.ts'
import {
  type BillingProgress,
  openBillingCaches,
  recordGone,
  runInvoicing,
  runMeter,
  runPayments,
} from './nouns/billing/index.ts'
import type { Registration, Sharding } from './kit/controller.ts'
import { customImageController } from './nouns/custom-image/index.ts'
import { databaseController, runArchiveSweeper } from './nouns/database/index.ts'
import { runAccountNamespaces } from './nouns/account/index.ts'
import { type CheckpointOptions, runAuditCheckpoints } from './nouns/audit/index.ts'
import { runInternalTenantSweeper } from './kit/internal-tenant.ts'
import { runKubeconfigs } from './nouns/kubeconfig/index.ts'
import type { KubeconfigsAwaiting } from '../db/kubeconfig/index.ts'
import { devClusterController } from './nouns/dev-cluster/index.ts'
import { edgeController } from './nouns/edge/index.ts'
import { floatingIpController } from './nouns/floating-ip/index.ts'
import { kubernetesClusterController } from './nouns/kubernetes-cluster/index.ts'
import { type HostClusterAccess, kubernetesHostController } from './nouns/kubernetes-host/index.ts'
import { nodePoolController } from './nouns/node-pool/index.ts'
import { playgroundController } from './nouns/playground/index.ts'
import { loadBalancerController } from './nouns/load-balancer/index.ts'
import { networkController } from './nouns/network/index.ts'
import { type FencingAccess, nodeController } from './nouns/node/index.ts'
import { objectStorageController } from './nouns/object-storage/index.ts'
import { type OperationTargets, operationController } from './kit/operation/reconciler.ts'
import { operationRecords } from './kit/operation/record.ts'
import {
  orphanBackupJobController,
  orphanImageController,
  orphanInstanceController,
  orphanMachineController,
  orphanVolumeController,
} from './nouns/orphan/index.ts'
import type { Parts } from './kit/parts.ts'
import { publicNetworkController, publicPortController } from './network/public-network/index.ts'
import { publicPoolController } from './nouns/public-pool/index.ts'
import { openRemovals } from './kit/removals.ts'
import { routerController } from './nouns/router/index.ts'
import { inShard, type Shard, WHOLE } from './kit/shard.ts'
import { serverGroupController } from './nouns/server-group/index.ts'
import { serverController } from './nouns/server/index.ts'
import { snapshotController } from './nouns/snapshot/index.ts'
import { storageController } from './nouns/storage/index.ts'
import { templateController } from './nouns/template/index.ts'
import { runUsageCollector, type UsageSource } from './nouns/usage/index.ts'
import { runWebhooks, webhookController, type WebhookOptions } from './nouns/webhook/index.ts'
import { type AuditSinkOptions, runAuditSinks } from './nouns/audit-sink/index.ts'
import { zoneController } from './nouns/zone/index.ts'

export interface ControllersOptions extends Parts, FencingAccess, BackupAccess, HostClusterAccess {
  readonly metrics: ControllerMetrics
  /** Whether this process still leads; always true when absent. */
  readonly mayAct?: () => boolean
  /** All of the work when absent. */
  readonly shard?: Shard
  /** Names this process in Events. */
  readonly identity?: string
}

/** Workers of each controller. They spend most of their time waiting for the database and for Kubernetes; reads and
 *  commits that wait at the same time are batched. */
const WORKERS = 32

/** The nouns that customers and operators change. */
const NOUNS: readonly Registration<ControllersOptions>[] = [
  serverController,
  storageController,
  snapshotController,
  customImageController,
  templateController,
  nodeController,
  publicPoolController,
  zoneController,
  publicNetworkController,
  publicPortController,
  networkController,
  routerController,
  loadBalancerController,
  floatingIpController,
  edgeController,
  databaseController,
  kubernetesClusterController,
  nodePoolController,
  kubernetesHostController,
  playgroundController,
  devClusterController,
  objectStorageController,
  serverGroupController,
  backupController,
  webhookController,
]

/** Every kind that has operations. */
export const OPERATION_TARGETS = NOUNS.filter(({ operationKinds }) => operationKinds.length > 0).map(
  ({ resource }) => resource,
) as OperationTargets // flows are for kinds with a stanza only

/** Every controller. */
export const CONTROLLERS: readonly Registration<ControllersOptions>[] = [
  ...NOUNS,
  operationController(OPERATION_TARGETS),
  orphanInstanceController,
  orphanVolumeController,
  orphanMachineController,
  orphanBackupJobController,
  orphanImageController,
]

/** How unfinished changes are judged and undone, for every noun whose changes the API server accepts by intent. */
export const INTENT_HANDLERS: IntentHandlers = CONTROLLERS.flatMap(({ intent }) =>
  intent === undefined ? [] : [intent],
)

/** The name of the controllers in Events. */
const EVENTS_CONTROLLER = 'svccloud.dev/controllers'

/** Which objects a process of the shard reconciles; every object when undefined. */
const SELECTORS: Readonly<Record<Sharding, (shard: Shard) => ((root: KubeObject) => boolean) | undefined>> = {
  'by-zone': inShard,
  zones:
    (shard) =>
    ({ metadata }) =>
      shard.ownsZone(metadata.name),
  common: () => undefined,
}

/** Opens every controller of the shard. Opening requests the caches that a controller needs, so it comes before the
 *  caches are started. */
export function openControllers(options: ControllersOptions): readonly Controller[] {
  const { shard = WHOLE, identity = shard.name } = options
  openBillingCaches(options.caches)
  const removals = openRemovals(
    options,
    NOUNS.map(({ resource }) => resource),
  )
  const shared = {
    ...options,
    workers: WORKERS,
    beforeDeletion: removals.order,
    beforeGone: async (type: ResourceType, root: KubeObject) => {
      await commitLastChange(options, root)
      await recordGone(options, type, root)
      await removals.confirm(type, root)
    },
    operations: operationRecords(options),
    events: openEventRecorder({ ...options, controller: EVENTS_CONTROLLER, instance: identity }),
  }
  return CONTROLLERS.filter(({ sharding }) => sharding !== 'common' || shard.hasCommonWork).flatMap(
    ({ sharding, open }) => {
      const reconciler = open(options)
      const selects = SELECTORS[sharding](shard)
      return reconciler === undefined ? [] : [openController(reconciler, { ...shared, ...defined({ selects }) })]
    },
  )
}

export interface RunOptions extends Parts, CheckpointOptions, WebhookOptions, AuditSinkOptions {
  /** Where object storage is, or why there is none. What it keeps for owners that are deleted is removed. */
  readonly objectStorage: ObjectStorageOffer
  readonly shard?: Shard
  readonly usageOf?: UsageSource
  /** Called after each sweep of change intents. */
  readonly onSwept?: (result: SweepResult) => void
  /** Called after each sweep of claims. */
  readonly onClaimsSwept?: (sweep: ClaimSweep) => void
  readonly onKubeconfigsAwaiting?: (awaiting: KubeconfigsAwaiting) => void
  /** Absent where no payment processor is configured. */
  readonly processor?: PaymentProcessor
  /** Called with the progress of metering and invoices. */
  readonly onBilled?: (progress: BillingProgress) => void
}

/** Runs the controllers and the shard's work that has no object, until the signal aborts. */
export async function runControllers(
  controllers: readonly Controller[],
  options: RunOptions,
  signal: AbortSignal,
): Promise<void> {
  const common = (options.shard ?? WHOLE).hasCommonWork
    ? [
        runAccountNamespaces(options, signal),
        runIntentSweeper({ ...options, intents: INTENT_HANDLERS }, signal),
        runMeter(options, signal),
        runInvoicing(options, signal),
        runPayments(options, signal),
        runArchiveSweeper(options, signal),
        runInternalTenantSweeper(options, signal),
        runKubeconfigs(options, signal),
        runAuditCheckpoints(options, signal),
        runWebhooks(options, signal),
        runAuditSinks(options, signal),
      ]
    : []
  const { usageOf } = options
  const collecting = usageOf === undefined ? [] : [runUsageCollector({ ...options, usageOf }, signal)]
  await Promise.all([
    ...controllers.map((controller) => controller.run(signal)),
    runClaimSweeper(options, signal),
    ...common,
    ...collecting,
  ])
}
