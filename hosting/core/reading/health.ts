/** Checks the responses of healthy programs of control planes. Any other response counts as unhealthy. Pure. */
import { z } from 'zod'

interface HttpAnswer {
  readonly status: number
  readonly text: string
}

/** Response of `/readyz` of an API server. */
export const isApiReady = ({ status, text }: HttpAnswer): boolean => status === 200 && text.trim() === 'ok'

const Health = z.looseObject({ health: z.literal('true') })

/** Response of `/health` of a member of etcd: it has a leader and accepts writes. */
export function isMemberHealthy({ status, text }: HttpAnswer): boolean {
  if (status !== 200) return false
  try {
    return Health.safeParse(JSON.parse(text)).success
  } catch {
    return false
  }
}
