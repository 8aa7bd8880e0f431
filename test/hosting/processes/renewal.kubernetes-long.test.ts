/** Certificates are renewed while their host runs: those who read them once are begun anew, API servers serve on. */
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../kit/sys/clock.ts'
import { until } from '../../eventually.ts'
import { type Hosted, isWhole, newDesired, openHosted, untilState } from './hosted.ts'

const DAY_MILLISECONDS = 86_400_000
const HOUR_MILLISECONDS = 3_600_000
/** Certificates that were made then hold for 45 days from now on. */
let behind = 320 * DAY_MILLISECONDS
let ahead = 0
const clock: Clock = {
  ...systemClock,
  now: () => new Date(systemClock.now().getTime() - behind),
  monotonicMilliseconds: () => systemClock.monotonicMilliseconds() + ahead,
}

let hosted: Hosted
const desired = newDesired()
const { id } = desired
beforeAll(async () => {
  hosted = await openHosted({ clock })
  await hosted.host.ensure(desired)
})
afterAll(() => hosted.end())

/** Until when what somebody is served with holds. */
const servedUntil = (endpoint: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const { hostname: host, port } = new URL(endpoint)
    const socket = connect({ host, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(Date.parse(socket.getPeerX509Certificate()?.validTo ?? ''))
      socket.destroy()
    })
    socket.once('error', reject)
  })
const fileUntil = async (name: string) =>
  Date.parse(new X509Certificate(await readFile(join(hosted.folder, id, `${name}.crt`))).validTo)
const pids = () =>
  ['kube-apiserver-0', 'etcd-0', 'kube-controller-manager', 'kube-scheduler'].map((name) => hosted.host.pid(id, name))

test('what ends soon is renewed within the hour, and nothing else is', async () => {
  const { endpoint } = await untilState(hosted, id, isWhole)
  await until(
    'all programs',
    async () => pids(),
    (found) => found.every((pid) => pid !== undefined),
  )
  const soon = Date.now() + 60 * DAY_MILLISECONDS
  const [before, authority] = [pids(), await fileUntil('ca')]
  expect(await servedUntil(endpoint ?? '')).toBeLessThan(soon)
  // An hour without anything to renew changes nothing.
  ahead += HOUR_MILLISECONDS
  await until(
    'some rounds',
    async () => (await hosted.host.get(id))?.observedAt ?? '',
    (at) => Date.parse(at) > clock.now().getTime() - 500,
  )
  expect([pids(), (await servedUntil(endpoint ?? '')) < soon]).toEqual([before, true])

  behind = 0
  ahead += HOUR_MILLISECONDS
  await until(
    'the certificate of now to be served',
    () => servedUntil(endpoint ?? ''),
    (at) => at > soon,
  )
  await until(
    'those that read theirs once to be begun anew',
    async () => pids(),
    ([, , manager, scheduler]) => manager !== before[2] && scheduler !== before[3] && manager !== undefined,
  )
  expect(pids().slice(0, 2)).toEqual(before.slice(0, 2))
  expect(await fileUntil('ca')).toBe(authority)
  for (const name of ['apiserver', 'etcd', 'etcd-client', 'admin', 'controller-manager', 'autoscaler'])
    expect([name, (await fileUntil(name)) > soon]).toEqual([name, true])
  // It is spoken to with the certificates of now.
  expect((await untilState(hosted, id, isWhole)).detail).toBe('')
  expect((await hosted.host.load(id)).nodes).toEqual([])
})
