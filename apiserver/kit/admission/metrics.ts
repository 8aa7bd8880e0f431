/** Reports whether people's writes to Kubernetes are judged before they are stored. Where they are not, nobody is
 *  refused: operators see it here, the chart has an alert for it, and the control plane's condition WritesJudged
 *  reports it. */
import { Gauge, type Registry } from '../../../kit/sys/metrics.ts'

export function openAdmissionMetrics(registry: Registry, isWebhookCalled: () => boolean): void {
  new Gauge({
    name: 'svccloud_webhook_served',
    help: '1 where Kubernetes calls the admission webhook, 0 where nothing judges writes before they are stored',
    registers: [registry],
    collect() {
      this.set(isWebhookCalled() ? 1 : 0)
    },
  })
}
