/** The metric that shows whether the admission webhook is called. */
import { expect, test } from 'vitest'
import { openAdmissionMetrics } from '../../../../apiserver/kit/admission/metrics.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'

test('whether the webhook is called is a metric, as it is at the moment', async () => {
  const registry = openRegistry({ isProcessWide: false })
  let isCalled = true
  openAdmissionMetrics(registry, () => isCalled)
  expect(await registry.metrics()).toContain('svccloud_webhook_served 1\n')
  isCalled = false
  expect(await registry.metrics()).toContain('svccloud_webhook_served 0\n')
})
