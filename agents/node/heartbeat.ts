/** Says that the node is alive (a Lease, every five seconds) and what it is (a NodeReport). */
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
  /** What the report depends on, and nobody calls back about: looked at with every beat. */
  readonly images: Pick<TemplateStore, 'built'>
  readonly clock: Clock
  readonly log: Logger
}

const INTERVAL_MILLISECONDS = 5_000
/** Three missed renewals: the node is taken for lost. */
const LEASE_SECONDS = 15
/** The report is written again so often, in case somebody took it away. */
const BEATS_PER_REPORT = 60

export interface Heartbeat {
  /** Whether the last renewal came through. */
  isAlive(): boolean
  /** Resolves when the report of this process has come through for the first time. */
  readonly reported: Promise<void>
  /** The report has news: the next beat writes it. */
  reportAgain(): void
  run(signal: AbortSignal): Promise<void>
}

/** What fails is logged and tried again with the next beat. */
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

  /** A node is not alive before it has said what it is; later a report that fails costs nothing but its news. */
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
        // Before its first success a node is about to be wanted: it asks more often.
        await clock.sleep(isAlive ? dueAt - clock.monotonicMilliseconds() : RETRY_MILLISECONDS, signal)
      }
    },
  }
}

const RETRY_MILLISECONDS = 1_000
