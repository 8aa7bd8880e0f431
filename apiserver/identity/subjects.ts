/** Names under which attempts are counted. */
import type { RequestFacts } from '../../kit/http/call.ts'
import { addressKey } from '../../kit/http/steps/limit-address.ts'

export const emailSubject = (email: string): string => `email ${email}`
export const addressSubject = (request: RequestFacts): string => `address ${addressKey(request.sourceIp)}`
