import { expect, test } from 'vitest'
import { z } from 'zod'
import { publicEndpoint } from '../../../kit/http/endpoint.ts'
import { openApiDocument } from '../../../kit/http/openapi.ts'
import { createPipeline, requestDurations } from '../../../kit/http/pipeline.ts'
import { route } from '../../../kit/http/route.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { movableClock } from './clock.ts'

const base = {
  method: 'GET',
  summary: 'x',
  credentials: ['public'],
  permission: null,
  budget: 'none',
  answers: { 200: z.strictObject({}) },
} as const
const old = route({
  ...base,
  id: 'old',
  path: '/v1/old',
  deprecation: { at: new Date('2026-01-01T00:00:00Z'), sunsetAt: new Date('2026-08-01T00:00:00Z') },
})
const current = route({ ...base, id: 'current', path: '/v1/current' })

test('a route that will go says so on every answer and in the document', async () => {
  const service = createPipeline({
    endpoints: [old, current].map((each) => publicEndpoint(each, async () => ({ status: 200, body: {} }))),
    authenticate: async () => undefined,
    requireStanding: async () => {},
    countRequest: async () => 0,
    auditRefusal: async () => {},
    translate: (error) => error,
    clock: movableClock(),
    random: systemRandom,
    log: silentLog,
    durations: requestDurations(openRegistry({ isProcessWide: false })),
    trustedProxies: [],
    isSecure: false,
    checkAnswers: true,
  })
  const ask = async (target: string) =>
    (
      await service({
        method: 'GET',
        target,
        headers: {},
        remoteAddress: '192.0.2.1',
        signal: new AbortController().signal,
      })
    ).headers
  const announced = { deprecation: '@1767225600', sunset: 'Sat, 01 Aug 2026 00:00:00 GMT' }
  expect(await ask('/v1/old')).toMatchObject(announced)
  expect(await ask('/v1/old?unknown=1')).toMatchObject(announced)
  expect(Object.keys(await ask('/v1/current'))).not.toContain('deprecation')
  const document = openApiDocument([old, current], { title: '', description: '', version: '0', serverUrl: '/' })
  expect(document.paths?.['/v1/old']?.get).toMatchObject({
    deprecated: true,
    'x-deprecated-at': '2026-01-01T00:00:00.000Z',
  })
  expect(document.paths?.['/v1/current']?.get).not.toHaveProperty('deprecated')
})
