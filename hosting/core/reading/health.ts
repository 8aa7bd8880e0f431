/** What programs of control planes say when they are well. Whatever else answers in their place is not them. Pure. */
import { z } from 'zod'

interface Said {
  readonly status: number
  readonly text: string
}

/** Of `/readyz` of an API server. */
export const isApiReady = ({ status, text }: Said): boolean => status === 200 && text.trim() === 'ok'

const Health = z.looseObject({ health: z.literal('true') })

/** Of `/health` of a member of etcd: it has a leader, and writes are taken. */
export function isMemberHealthy({ status, text }: Said): boolean {
  if (status !== 200) return false
  try {
    return Health.safeParse(JSON.parse(text)).success
  } catch {
    return false
  }
}
