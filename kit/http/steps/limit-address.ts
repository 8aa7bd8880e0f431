/** Limits that count for each client address, before everything else. */
import { rateLimited } from '../../../domain/problem.ts'
import type { StepMaker } from '../step.ts'

export const limitAddress: StepMaker = (route, parts) => {
  const rules = route.rates.filter((rule) => rule.by === 'address')
  if (rules.length === 0) return undefined
  return async (context) => {
    for (const rule of rules) {
      const waitSeconds = await parts.countRequest(rule, addressKey(context.request.sourceIp))
      if (waitSeconds > 0) throw rateLimited(waitSeconds)
    }
  }
}

const IPV6_PREFIX_GROUPS = 4

/** The address in the form that limits count: one IPv6 client has a complete /64. */
export function addressKey(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  if (mapped?.[1] !== undefined) return mapped[1]
  if (!address.includes(':')) return address
  const [head = '', tail] = address.split('%')[0]!.split('::') // split always gives a first part
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const groups = [...left, ...Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0'), ...right]
  return `${groups
    .slice(0, IPV6_PREFIX_GROUPS)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
