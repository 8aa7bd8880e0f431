/** Whether OVN's controller of this host keeps running. Others start it, and start it again when it ends: in between
 *  guests go on with the rules that are installed, and follow no change. */
import type { Registry } from 'prom-client'
import { Gauge } from '../../../../kit/sys/metrics.ts'
import { ofBridge } from './cached-flows.ts'

/** Kept with the bridge by OVN's controller: milliseconds since 1970. */
const STARTED = 'external_ids:ovn-startup-ts'
const MILLISECONDS = 1_000

/** When it was started, as of each time that the metrics are read; no value while Open vSwitch does not say. A change
 *  is a restart. */
export function exposeOvnController(registry: Registry): void {
  new Gauge({
    name: 'svccloud_node_ovn_controller_start_time_seconds',
    help: 'When the ovn-controller of this host was started, in seconds since 1970',
    registers: [registry],
    async collect() {
      const started = Number(await ofBridge(STARTED).catch(() => ''))
      if (started > 0) this.set(started / MILLISECONDS)
      else this.remove()
    },
  })
}
