/** Editors of the portal: what they send, and what they warn of. */
import { describe, expect, it } from 'vitest'
import { chosenOf, nextOrder, ordered } from '../../portal/nouns/list-view.ts'
import {
  configurationOf,
  usersOf,
  withBackend,
  withFrontend,
  withoutFrontend,
} from '../../portal/nouns/load-balancer/configuration.ts'
import { secretsIn } from '../../portal/nouns/secrets.ts'
import {
  cutsSsh,
  type Draft,
  lets,
  moved,
  NEW_RULE,
  portsOf,
  TEMPLATES,
} from '../../portal/nouns/server/firewall-rules.ts'
import { linesOf } from '../../portal/pages/object-storage-lines.ts'

const HERE = '192.0.2.7'
const draft = (rules: Draft['rules'], rest: Partial<Draft> = {}): Draft => ({
  enabled: true,
  default_inbound: 'drop',
  default_outbound: 'accept',
  rules,
  ...rest,
})

describe('the editor of a firewall', () => {
  it('lets the first rule that fits decide', () => {
    const drop = { ...NEW_RULE, action: 'drop' as const, remote_cidrs: ['192.0.2.0/24'] }
    expect(lets(draft([drop, ...TEMPLATES.ssh('')]), HERE, 22)).toBe(false)
    expect(lets(draft([...TEMPLATES.ssh(''), drop]), HERE, 22)).toBe(true)
    expect(lets(draft([drop, ...TEMPLATES.ssh('')]), '198.51.100.1', 22)).toBe(true)
    expect(lets(draft([{ ...NEW_RULE, family: 'ipv6' }]), HERE, 22)).toBe(false)
  })

  it('warns only of what ends the session', () => {
    const open = draft([], { enabled: false })
    expect(cutsSsh(open, draft([]), HERE)).toBe(true)
    expect(cutsSsh(open, draft([...TEMPLATES.ssh(HERE)]), HERE)).toBe(false)
    expect(cutsSsh(draft([]), draft([]), HERE)).toBe(false)
  })

  it('moves a rule one place, and none beyond the ends', () => {
    expect(moved(['a', 'b', 'c'], 1, -1)).toEqual(['b', 'a', 'c'])
    expect(moved(['a', 'b'], 1, 1)).toEqual(['a', 'b'])
  })

  it('reads ports as people write them', () => {
    expect(portsOf(' 8000 - 8080 ')).toEqual({ port_start: 8000, port_end: 8080 })
    expect(portsOf('80')).toEqual({ port_start: 80, port_end: null })
    expect(portsOf('http')).toBeUndefined()
  })
})

describe('the order of a list', () => {
  const items = [
    { id: 'a', name: 'web-10', size_gibibytes: 5 },
    { id: 'b', name: 'web-2', size_gibibytes: null },
    { id: 'c', name: 'Änne', size_gibibytes: 40 },
  ]
  const idsBy = (field: string, isDown: boolean): string =>
    ordered(items, (item) => item[field], isDown)
      .map(({ id }) => id)
      .join('')

  it('is that of people for texts, and that of size for numbers', () => {
    expect(idsBy('name', false)).toBe('cba')
    expect(idsBy('name', true)).toBe('abc')
    expect(idsBy('size_gibibytes', false)).toBe('acb')
  })

  it('has what has no value last in both directions', () => {
    expect(idsBy('size_gibibytes', true)).toBe('cab')
  })

  it('turns with each press of a head, and returns to that of the service', () => {
    const up = nextOrder(undefined, 'name')
    const down = nextOrder(up, 'name')
    expect([up, down, nextOrder(down, 'name')]).toEqual([
      { by: 'name', isDown: false },
      { by: 'name', isDown: true },
      undefined,
    ])
    expect(nextOrder(down, 'state')).toEqual({ by: 'state', isDown: false })
  })
})

describe('the columns of a list', () => {
  const noun = { columns: ['zone', 'plan'], facts: ['plan', 'created_at'] } as const

  it('are those that were chosen, in the order of the noun', () => {
    expect(chosenOf(noun, undefined)).toEqual(['zone', 'plan'])
    expect(chosenOf(noun, 'created_at zone')).toEqual(['zone', 'created_at'])
    expect(chosenOf(noun, '')).toEqual([])
  })

  it('are none that another release has removed', () => {
    expect(chosenOf(noun, 'plan shape')).toEqual(['plan'])
  })
})

describe('secrets of answers', () => {
  it('are found, whatever operation answered', () => {
    expect(secretsIn({ webhook: { id: 'a' }, secret: 'whsec_a' })?.values).toEqual({ secret: 'whsec_a' })
    expect(secretsIn({ credentials: { password: 'p', port: 5432 } })?.values).toEqual({ password: 'p' })
    expect(secretsIn({ server: { id: 'a' } })).toBeUndefined()
  })
})

describe('the configuration of a load balancer', () => {
  const frontend = {
    name: 'web',
    port: 80,
    mode: 'tcp' as const,
    backend: 'pool',
    certificate_ids: [],
    allowed_cidrs: ['192.0.2.0/24'],
    inbound_proxy_protocol: false,
    idle_timeout_seconds: 60,
  }
  const member = { id: 'm', name: 'a', address: '10.0.0.2', port: 80, weight: 100, enabled: true, is_healthy: true }
  const balancer = {
    configuration_generation: 7,
    frontends: [frontend],
    backends: [
      {
        name: 'pool',
        algorithm: 'round_robin' as const,
        health_check: {
          type: 'tcp' as const,
          path: '/',
          interval_seconds: 5,
          timeout_seconds: 2,
          rise: 2,
          fall: 3,
          expected_statuses: [],
        },
        proxy_protocol: 'none' as const,
        sticky_cookie: null,
        members: [member],
      },
    ],
  }

  it('keeps members, their weights and the generation that it was made from', () => {
    const { id: _id, is_healthy: _health, ...input } = member
    expect(configurationOf(balancer).backends[0]?.members).toEqual([input])
    expect(withBackend(balancer, { name: 'pool', algorithm: 'least_connections' })).toMatchObject({
      configuration_generation: 7,
      backends: [{ algorithm: 'least_connections', members: [input] }],
    })
  })

  it('changes a frontend in its place, and what the form does not ask for stays', () => {
    const changed = withFrontend(balancer, { name: 'web', port: 81, mode: 'tcp', backend: 'pool' })
    expect(changed.frontends).toEqual([{ ...frontend, port: 81 }])
    expect(withoutFrontend(balancer, 'web').frontends).toEqual([])
    expect(usersOf(balancer, 'pool')).toEqual(['web'])
  })
})

describe('lines for object storage', () => {
  it('quote what the service says, and hold no secret', () => {
    const lines = linesOf({
      zone: 'fi1',
      endpoint: 'https://s3.example.com',
      access_key_id: "it's",
      bucket_prefix: 'a-',
      certificate_authority: null,
    })
    expect(lines.map(({ name }) => name)).toEqual(['aws', 'rclone', 's3cmd'])
    for (const { text } of lines) {
      expect(text).toContain(`'it'\\''s'`)
      expect(text).toContain('$SECRET_ACCESS_KEY')
    }
  })
})
