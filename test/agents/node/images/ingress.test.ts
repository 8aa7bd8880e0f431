/** What the ingress of dev clusters makes of Ingresses: the configuration of HAProxy, by the script of their image. */
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { defined } from '../../../../domain/defined.ts'
import { PYTHON } from '../../../python.ts'

const SCRIPT = `
import json, sys
LIB, RUN, ROOT, CURRENT = "/lib", "/run", "/", "/current"
class Refused(Exception): pass
sys.path.insert(0, "agents/node/images/managed")
sys.dont_write_bytecode = True
import ingress
given = json.load(sys.stdin)
services = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in given["services"]}
print(ingress.configuration(given["ingresses"], services, given["slices"]))
`
const service = (name: string, number = 80) => ({
  metadata: { namespace: 'default', name },
  spec: { ports: [{ name: 'http', port: number }] },
})
const slice = (name: string, addresses: readonly string[], more: object = {}) => ({
  metadata: { namespace: 'default', labels: { 'kubernetes.io/service-name': name } },
  addressType: 'IPv4',
  ports: [{ name: 'http', port: 8_080 }],
  endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
  ...more,
})
const path = (text: string, name: string, pathType = 'Prefix') => ({
  path: text,
  pathType,
  backend: { service: { name, port: { number: 80 } } },
})
const ingress = (rules: readonly object[], spec: object = {}, createdAt = '2026-01-01T00:00:00Z') => ({
  metadata: { namespace: 'default', name: 'web', uid: createdAt, creationTimestamp: createdAt },
  spec: { rules, ...spec },
})
const rule = (host: string | undefined, ...paths: readonly object[]) => ({
  ...defined({ host }),
  http: { paths },
})

function configure(ingresses: readonly object[], services: readonly object[] = [], slices: readonly object[] = []) {
  const input = JSON.stringify({ ingresses, services, slices })
  const text = execFileSync(PYTHON, ['-I', '-c', SCRIPT], { input, encoding: 'utf8' })
  const [plain = ''] = text.split('frontend secure')
  const chosen = plain.split('\n').filter((line) => line.includes('use_backend'))
  return { text, rules: chosen.map((line) => line.replace(/.*? if /, '')) }
}

test('the most special rule is asked first: hosts, then wildcards, then none; exact paths, then long ones', () => {
  const { rules } = configure([
    ingress([
      rule(undefined, path('/', 'a')),
      rule('*.example.com', path('/', 'a')),
      rule('web.example.com', path('/', 'a'), path('/foo/bar', 'a'), path('/foo/', 'a'), path('/foo', 'b', 'Exact')),
    ]),
  ])
  const host = "{ var(txn.host) -m str 'web.example.com' }"
  expect(rules).toEqual([
    `${host} { path -m str '/foo' }`,
    `${host} { path,concat(/) -m beg '/foo/bar/' }`,
    `${host} { path,concat(/) -m beg '/foo/' }`,
    host,
    "{ var(txn.host) -m reg '^[^.]+\\.example\\.com$' }",
    expect.stringMatching(/^ {4}use_backend service-\w{16}$/),
  ])
})

test('of two Ingresses that say the same the older one holds, and other classes are left to others', () => {
  const same = (name: string) => [rule('web.example.com', path('/', name))]
  const older = ingress(same('old'))
  const { text } = configure([ingress(same('new'), {}, '2026-01-02T00:00:00Z'), older])
  expect(text).toBe(configure([older]).text)
  expect(configure([ingress(same('a'), { ingressClassName: 'another' })]).rules).toEqual([])
  expect(configure([ingress(same('a'), { ingressClassName: 'svccloud' })]).rules).toHaveLength(1)
})

test('nothing that a path or a host says becomes a word of the configuration', () => {
  const bad = ["/a'b", '/a b', '/a\nserver x 1.2.3.4:80', '/a"b', '/a#b', '/a\\b', '/a{b']
  const rules = [...bad.map((text) => rule('web.example.com', path(text, 'a'))), rule("evil' }", path('/', 'a'))]
  expect(configure([ingress(rules)]).rules).toEqual([])
})

test('endpoints that are ready answer, of one family; a service without any says so', () => {
  const to = ingress([rule('web.example.com', path('/', 'web'))])
  const six = slice('web', ['fd00::1'], { addressType: 'IPv6' })
  const gone = { endpoints: [{ addresses: ['10.0.0.9'], conditions: { ready: false } }] }
  const { text } = configure(
    [to],
    [service('web')],
    [slice('web', ['10.0.0.2', '10.0.0.1']), six, slice('web', [], gone)],
  )
  expect(text.split('\n').filter((line) => line.includes(' server s'))).toEqual([
    '    server s0 10.0.0.1:8080',
    '    server s1 10.0.0.2:8080',
  ])
  expect(configure([to], [service('web')], [six]).text).toContain('server s0 [fd00::1]:8080')
  const none = configure([to], [service('web', 81)], [slice('web', ['10.0.0.1'])]).text
  expect(none).toContain('return status 503')
  expect(none).not.toContain(' server s')
})
