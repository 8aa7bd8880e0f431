/** Messages between a host of control planes and the process that reads for one of them: JSON texts. The host trusts no
 *  answer before it has validated it. */
import { z } from 'zod'
import { RefusalReason } from '../../../integrations/control-planes/calls.ts'

/** Limit of an answer. The longest one lists all requests and resources of a cluster's nodes and pods. */
export const ANSWER_BYTES_MAXIMUM = 16 * 1024 ** 2
/** Limit of a question, which this host sends. */
export const QUESTION_BYTES_MAXIMUM = 8 * 1024 ** 2
const DETAIL_LETTERS_MAXIMUM = 1_000

export const Question = z.object({ id: z.int(), task: z.string(), words: z.array(z.unknown()) })
export type Question = z.infer<typeof Question>

export const Answer = z.object({
  id: z.int(),
  /** Absent when the task returns nothing, and when it failed. */
  value: z.unknown().optional(),
  /** Why it failed, for people; `refusal` when it was refused. */
  failure: z.object({ detail: z.string().max(DETAIL_LETTERS_MAXIMUM), refusal: RefusalReason.optional() }).optional(),
})
export type Answer = z.infer<typeof Answer>

export const shortened = (text: string): string => text.slice(0, DETAIL_LETTERS_MAXIMUM)
