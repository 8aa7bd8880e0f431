/** Who may call the webhook. */
import { Agent, request } from 'node:https'
import { afterEach, beforeAll, expect, test } from 'vitest'
import {
  type CallerCredentials,
  type Listener,
  startListener,
  WEBHOOK_PATH,
} from '../../../../apiserver/kit/admission/listener.ts'
import { defined } from '../../../../domain/defined.ts'
import { webhookCaller } from '../../../../embedded/kubernetes/server/call-webhook.ts'
import { type Certificate, makeCertificate } from '../../../../kit/sys/certificate.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { systemRandom as random } from '../../../../kit/sys/random.ts'

const HOST = '127.0.0.1'
/** Leads here as well, and does not look like this machine. */
const OTHER_HOST = '127.0.0.2'
const REVIEW = JSON.stringify({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid: 'review',
    operation: 'CREATE',
    resource: { group: 'svccloud.dev', resource: 'servers' },
    userInfo: { username: 'grace' },
  },
})

let certificate: Certificate
let listener: Listener | undefined
/** What was admitted, by whether its caller was authenticated. */
let admitted: boolean[]
beforeAll(async () => {
  certificate = await makeCertificate({
    commonName: 'webhook',
    days: 1,
    hosts: [HOST, OTHER_HOST],
    isAuthority: true,
    now: clock.now(),
    random,
  })
})
afterEach(() => listener?.stop())

async function listen(callers: CallerCredentials): Promise<void> {
  admitted = []
  listener = await startListener({
    host: '0.0.0.0',
    port: 0,
    certificate,
    callers,
    log,
    admit: async (_request, { isAuthenticated }) => {
      admitted.push(isAuthenticated)
      return {}
    },
  })
}

interface Caller {
  readonly authorization?: string
  readonly client?: Certificate
  readonly body?: string
}
const status = ({ authorization, client, body = REVIEW }: Caller = {}) =>
  new Promise<number>((resolve, reject) => {
    request(
      {
        host: HOST,
        port: listener?.port,
        method: 'POST',
        path: WEBHOOK_PATH,
        headers: authorization === undefined ? {} : { authorization },
        ca: certificate.certificate,
        agent: false,
        ...(client === undefined ? {} : { cert: client.certificate, key: client.key }),
      },
      (response) => {
        response.resume()
        resolve(response.statusCode ?? 0)
      },
    )
      .once('error', reject)
      .end(body)
  })

const make = (commonName: string, authority?: Certificate) =>
  makeCertificate({
    commonName,
    days: 1,
    isAuthority: authority === undefined,
    ...defined({ authority }),
    now: clock.now(),
    random,
  })

test('with a token, only who shows it', async () => {
  await listen({ token: 'right' })
  expect(await status({ authorization: 'Bearer right' })).toBe(200)
  for (const authorization of ['Bearer wrong', 'Bearer ', 'right', 'Basic right'])
    expect(await status({ authorization }), authorization).toBe(401)
  expect(await status()).toBe(401)
  expect(admitted).toEqual([true])
})

test('with an authority of clients, only whose certificate it signed', async () => {
  const [authority, other] = [await make('kubernetes'), await make('other')]
  await listen({ clientAuthority: authority.certificate })
  expect(await status({ client: await make('kube-apiserver', authority) })).toBe(200)
  expect(await status({ client: await make('kube-apiserver', other) })).toBe(401)
  expect(await status({ authorization: 'Bearer undefined' })).toBe(401)
  expect(await status()).toBe(401)
  expect(admitted).toEqual([true])
})

test('while it drains it answers on, and every connection ends with its next answer', async () => {
  await listen({})
  const ending = () =>
    new Promise((resolve, reject) => {
      const options = { host: HOST, port: listener?.port, method: 'GET', path: '/', ca: certificate.certificate }
      request({ ...options, agent: new Agent({ keepAlive: true }) }, (response) => {
        response.resume()
        resolve(response.headers.connection)
      })
        .once('error', reject)
        .end()
    })
  expect(await ending()).toBe('keep-alive')
  listener?.drain()
  expect(await ending()).toBe('close')
})

test('with neither, everybody is answered as somebody unknown', async () => {
  await listen({})
  expect(await status()).toBe(200)
  expect(await status({ authorization: 'Bearer undefined' })).toBe(200)
  expect(admitted).toEqual([false, false])
})

test('what would be stored has bounds', async () => {
  await listen({ token: 'right' })
  const long = REVIEW.replace('grace', 'g'.repeat(513))
  expect(await status({ authorization: 'Bearer right', body: long })).toBe(400)
  expect(admitted).toEqual([])
})

test('the embedded Kubernetes API shows its token on this machine only', async () => {
  await listen({ token: 'right' })
  const call = (token: string | undefined, host: string) =>
    webhookCaller(token)({
      url: `https://${host}:${listener?.port}${WEBHOOK_PATH}`,
      authority: certificate.certificate,
      timeoutSeconds: 5,
      body: REVIEW,
    })
  expect(await call('right', HOST)).toBe('{}')
  await expect(call(undefined, HOST)).rejects.toThrow('the webhook answered 401')
  await expect(call('right', OTHER_HOST)).rejects.toThrow('the webhook answered 401')
  expect(admitted).toEqual([true])
})
