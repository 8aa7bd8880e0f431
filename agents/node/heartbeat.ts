/** Publishes that the node is alive (a Lease, every five seconds) and its properties (a NodeReport). */
import { Lease } from '../../kit/kube/object.ts'
import { isAlreadyExists, isNotFound, type Store } from '../../kit/kube/store.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { Outages } from '../../kit/sys/outages.ts'
import {
  HEARTBEAT_LEASE_NAME,
  NODE_REPORT_NAME,
  NodeReport,
  type NodeReportSpec,
} from '../../resources/instance/index.ts'
import type { TemplateStore } from './images/template-store.ts'

export interface HeartbeatOptions {
  readonly store: Store
  readonly namespace: string
  readonly nodeName: string
  readonly report: () => Promise<NodeReportSpec>
  /** The report depends on these, and nothing calls back when they change, so every beat checks them. */
  readonly images: Pick<TemplateStore, 'built'>
  readonly clock: Clock
  readonly log: Logger
}

const INTERVAL_MILLISECONDS = 5_000
/** After three missed renewals the node counts as lost. */
const LEASE_SECONDS = 15
/** The report is written again after this many beats, in case it was deleted. */
const BEATS_PER_REPORT = 60

export interface Heartbeat {
  /** Whether the last renewal succeeded. */
  isAlive(): boolean
  /** Resolves when this process has published its first report. */
  readonly reported: Promise<void>
  /** Requests a new report with the next beat. */
  reportAgain(): void
  run(signal: AbortSignal): Promise<void>
}

/** A failed beat is logged and retried with the next one. */
export function newHeartbeat({ store, namespace, nodeName, report, images, clock, log }: HeartbeatOptions): Heartbeat {
  let isAlive = false
  let hasReported = false
  let hasNews = false
  let reportedImages: string | undefined
  const reported = Promise.withResolvers<void>()
  const reportOutages = new Outages({ log, clock }, 'report failed')

  async function renew(): Promise<void> {
    const spec = {
      holderIdentity: nodeName,
      leaseDurationSeconds: LEASE_SECONDS,
      renewTime: clock.now().toISOString().replace('Z', '000Z'),
    } // microseconds
    const key = { namespace, name: HEARTBEAT_LEASE_NAME }
    try {
      await store.patch(Lease, key, { spec })
    } catch (error) {
      if (!isNotFound(error)) throw error
      await store.create(Lease, { metadata: key, spec }).catch((failure: unknown) => {
        if (!isAlreadyExists(failure)) throw failure
      })
    }
  }

  /** A node counts as alive only once its report is published. A later report that fails only delays its changes. */
  async function publishReport(builtImages: string | undefined): Promise<boolean> {
    hasNews = false
    try {
      await store.apply(NodeReport, { metadata: { namespace, name: NODE_REPORT_NAME }, spec: await report() })
    } catch (error) {
      if (!hasReported) throw error
      reportOutages.failed(error)
      return false
    }
    reportOutages.over()
    hasReported = true
    reportedImages = builtImages
    reported.resolve()
    return true
  }

  return {
    isAlive: () => isAlive,
    reported: reported.promise,
    reportAgain: () => void (hasNews = true),
    async run(signal) {
      const outages = new Outages({ log, clock }, 'heartbeat failed')
      for (let sinceReport = BEATS_PER_REPORT; !signal.aborted; sinceReport++) {
        const dueAt = clock.monotonicMilliseconds() + INTERVAL_MILLISECONDS
        try {
          const builtImages = await images.built().then(String, () => reportedImages)
          const isDue = hasNews || builtImages !== reportedImages || sinceReport >= BEATS_PER_REPORT
          if (isDue && (await publishReport(builtImages))) sinceReport = 0
          await renew()
          if (!isAlive) log.info('heartbeat reaches the control plane')
          outages.over()
          isAlive = true
        } catch (error) {
          outages.failed(error)
          isAlive = false
        }
        // Before its first success it retries more often, because the node will soon be needed.
        await clock.sleep(isAlive ? dueAt - clock.monotonicMilliseconds() : RETRY_MILLISECONDS, signal)
      }
    },
  }
}

const RETRY_MILLISECONDS = 1_000
