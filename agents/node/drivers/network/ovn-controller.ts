/** Reports whether OVN's controller of this host keeps running. Others start it, and restart it when it exits. Until
 *  then guests keep the installed rules and see no change. */
import type { Registry } from 'prom-client'
import { Gauge } from '../../../../kit/sys/metrics.ts'
import { ofBridge } from './cached-flows.ts'

/** OVN's controller keeps this in the bridge: milliseconds since 1970. */
const STARTED = 'external_ids:ovn-startup-ts'
const MILLISECONDS = 1_000

/** Its start time, read at each scrape of the metrics; no value while Open vSwitch does not report it. A change is a
 *  restart. */
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
