/** What a host of control planes counts. */
import type { ControlPlanes } from '../../kit/control-planes/control.ts'
import { Gauge, type Registry } from '../../kit/sys/metrics.ts'

/** Read when they are asked for. */
export function openHostMetrics(registry: Registry, planes: Pick<ControlPlanes, 'offer'>): void {
  const gauge = (name: string, help: string, read: 'memoryBytes' | 'reservedBytes') =>
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        this.set((await planes.offer())[read])
      },
    })
  gauge('svccloud_control_planes_memory_bytes', 'Memory for control planes of Kubernetes.', 'memoryBytes')
  gauge('svccloud_control_planes_reserved_bytes', 'Of it, what is reserved for those there are.', 'reservedBytes')
}
