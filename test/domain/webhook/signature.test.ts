/** The published algorithm of Standard Webhooks, with the example of its own libraries. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { expect, test } from 'vitest'
import { secretText, signedHeaders } from '../../../domain/webhook/signature.ts'

/** As the specification describes verification: any of the signatures of version 1 may be the right one. */
const isVerified = (headers: Readonly<Record<string, string>>, body: string, secret: string): boolean => {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const content = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
  const right = createHmac('sha256', key).update(content).digest()
  return (headers['webhook-signature'] ?? '').split(' ').some((signature) => {
    const [version, value = ''] = signature.split(',')
    const given = Buffer.from(value, 'base64')
    return version === 'v1' && given.length === right.length && timingSafeEqual(given, right)
  })
}

test('a message is signed as the example of the specification', () => {
  expect(
    signedHeaders(
      { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', at: new Date(1_614_265_330_000), body: '{"test": 2432232314}' },
      ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
    ),
  ).toEqual({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
})

test('during a rotation, whoever has either secret can verify a message, and nobody else can', () => {
  const [fresh, previous, other] = [1, 2, 3].map((byte) => secretText(Buffer.alloc(32, byte)))
  const headers = signedHeaders({ id: 'evt-1', at: new Date(0), body: '{}' }, [fresh ?? '', previous ?? ''])
  expect([fresh, previous, other].map((secret) => isVerified(headers, '{}', secret ?? ''))).toEqual([true, true, false])
  expect(isVerified(headers, '{ }', fresh ?? '')).toBe(false)
})
