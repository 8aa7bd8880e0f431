import { expect, test } from 'vitest'
import { openAdmissionMetrics } from '../../../../apiserver/kit/admission/metrics.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'

test.each([true, false])('whether the webhook is served is a metric: %s', async (isServed) => {
  const registry = openRegistry({ isProcessWide: false })
  openAdmissionMetrics(registry, isServed)
  expect(await registry.metrics()).toContain(`svccloud_webhook_served ${Number(isServed)}\n`)
})
