/** Metrics of a host of control planes. */
import { bytesOfNext } from '../../integrations/control-planes/replicas.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { gaugesIn, Gauge, type Registry } from '../../kit/sys/metrics.ts'
import type { ControlPlanes } from '../../integrations/control-planes/control.ts'

/** A host with its own state. */
export interface HostedPlanes extends ControlPlanes {
  /** Earliest end of a certificate; undefined while there is none. */
  certificatesEndAt(): Date | undefined
  /** Keeps everything for the next start. */
  stop(): Promise<void>
}

/** Values are read at each scrape. */
export function openHostMetrics(
  registry: Registry,
  planes: Pick<HostedPlanes, 'offer' | 'certificatesEndAt'>,
  clock: Pick<Clock, 'now'>,
): void {
  const gauge = gaugesIn(registry)
  const offered = (read: 'memoryBytes' | 'reservedBytes') => async () => (await planes.offer())[read]
  gauge('svccloud_control_planes_memory_bytes', 'Memory for control planes of Kubernetes.', offered('memoryBytes'))
  gauge(
    'svccloud_control_planes_reserved_bytes',
    'Of it, what is reserved for those there are.',
    offered('reservedBytes'),
  )
  gauge('svccloud_control_planes_next_bytes', 'What another one would take.', async () =>
    bytesOfNext(await planes.offer()),
  )
  new Gauge({
    name: 'svccloud_control_planes_certificate_seconds',
    help: 'Until the first certificate of a control plane expires; absent without any.',
    labelNames: [],
    registers: [registry],
    collect() {
      this.reset()
      const at = planes.certificatesEndAt()
      if (at === undefined) this.remove()
      else this.set((at.getTime() - clock.now().getTime()) / 1_000)
    },
  })
}
