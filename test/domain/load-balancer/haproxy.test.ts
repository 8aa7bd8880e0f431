import { expect, test } from 'vitest'
import { proxyConfiguration, type ProxyPaths } from '../../../domain/load-balancer/haproxy.ts'
import { keepalivedConfiguration } from '../../../domain/load-balancer/keepalived.ts'
import { backendOf, EVERYTHING, frontendOf, memberOf } from './samples.ts'

const PATHS: ProxyPaths = { certificates: '/c', serverState: '/r/haproxy.state' }
const linesOf = (frontend: Parameters<typeof frontendOf>[0], backend: Parameters<typeof backendOf>[0] = {}) =>
  proxyConfiguration({ frontends: [frontendOf(frontend)], backends: [backendOf(backend)] }, PATHS)
    .split('\n')
    .map((line) => line.trim())

test('the same configuration gives the same text', () =>
  expect(proxyConfiguration(EVERYTHING, PATHS)).toBe(proxyConfiguration(structuredClone(EVERYTHING), PATHS)))

test.each([
  ['both families are listened on', {}, {}, ['bind 0.0.0.0:80', 'bind [::]:80 v6only']],
  [
    'https has its certificates, the first by default',
    { mode: 'https', port: 443, certificateIds: ['a', 'b'] },
    {},
    ['bind 0.0.0.0:443 ssl crt /c/a.pem crt /c/b.pem alpn h2,http/1.1', 'mode http'],
  ],
  ['PROXY headers are read', { inboundProxyProtocol: true }, {}, ['bind 0.0.0.0:80 accept-proxy']],
  [
    'who may connect is judged before PROXY headers',
    { inboundProxyProtocol: true, allowedCidrs: ['192.0.2.0/24', '2001:db8::/32'] },
    {},
    ['acl is_allowed src 192.0.2.0/24 2001:db8::/32', 'tcp-request connection reject if !is_allowed'],
  ],
  ['clients do not say where they come from', {}, {}, ['http-request del-header X-Forwarded-For', 'option forwardfor']],
  ['raw frontends read nothing', { mode: 'tcp' }, {}, ['mode tcp']],
  ['idle connections end', { idleTimeoutSeconds: 7 }, {}, ['timeout client 7s', 'timeout server 7s']],
  ['the least busy is chosen', {}, { algorithm: 'least_connections' }, ['balance leastconn']],
  ['the source chooses', {}, { algorithm: 'source_address' }, ['balance source', 'hash-type consistent']],
  [
    'members have their weight and their check',
    {},
    {},
    ['server member-1 10.0.0.10:8080 weight 100 check inter 5s rise 2 fall 3'],
  ],
  [
    'a disabled member of IPv6 gets PROXY headers and a cookie',
    {},
    {
      proxyProtocol: 'v1',
      stickyCookie: { name: 'S', ttlSeconds: 9 },
      members: [memberOf({ address: '2001:db8::1', weight: 0, enabled: false })],
    },
    [
      'cookie S insert indirect nocache httponly maxlife 9s',
      'server member-1 [2001:db8::1]:8080 weight 0 check inter 5s rise 2 fall 3 cookie member-1 send-proxy ' +
        'check-send-proxy disabled',
    ],
  ],
] as const)('%s', (_what, frontend, backend, lines) =>
  expect(linesOf(frontend, backend)).toEqual(expect.arrayContaining([...lines])),
)

test('what shares addresses has those of IPv6 apart, and does not take them back', () => {
  const text = keepalivedConfiguration({
    heartbeat: { interface: 'eth1', ownAddress: '10.0.0.2', peerAddress: '10.0.0.3' },
    routerId: 7,
    priority: 200,
    shared: [
      { address: '10.0.0.4', prefix: 24, interface: 'eth1' },
      { address: 'fd00::4', prefix: 64, interface: 'eth1' },
    ],
    faultFile: '/run/proxy-fault',
  })
  expect(text).toContain('  virtual_ipaddress {\n    10.0.0.4/24 dev eth1\n  }\n')
  expect(text).toContain('  virtual_ipaddress_excluded {\n    fd00::4/64 dev eth1 preferred_lft 0\n  }\n')
  expect(text).toContain('  nopreempt\n')
})
