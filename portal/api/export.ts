/** A log that the service answers in parts, read whole. */
import { ruleOf } from './portal.ts'
import { asRefusal, Refusal } from './refusal.ts'
import type { OperationId } from './operations.ts'

/** Where the next part begins; absent in the answer with the last one. */
const NEXT = 'x-next-after'

/** All parts of what an operation exports, in their order. Throws a Refusal: a log with a gap is none. */
export async function exportAll(
  operation: OperationId,
  get: (address: string) => Promise<Response> = (address) => fetch(address, { credentials: 'same-origin' }),
): Promise<readonly Blob[]> {
  const { path } = ruleOf(operation)
  const parts: Blob[] = []
  try {
    for (let after: string | null = ''; after !== null; ) {
      const response = await get(after === '' ? path : `${path}?${new URLSearchParams({ after })}`)
      if (!response.ok) throw new Refusal(operation, response, await problemIn(response))
      parts.push(await response.blob())
      const next = response.headers.get(NEXT)
      if (next !== null && next === after) throw new Error(`${path} repeats a part`)
      after = next
    }
  } catch (error) {
    throw asRefusal(operation, error)
  }
  return parts
}

const problemIn = async (response: Response): Promise<object> => {
  const body: unknown = await response.json().catch(() => undefined)
  return typeof body === 'object' && body !== null ? body : {}
}
