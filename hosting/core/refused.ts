import { CallRefusal, type RefusalReason } from '../../integrations/control-planes/calls.ts'

/** The request of the platform is not possible. */
export class Refused extends Error {
  readonly reason: RefusalReason
  constructor(reason: RefusalReason, detail: string) {
    super(detail)
    this.reason = reason
  }

  toBody(): CallRefusal {
    return CallRefusal.parse({ reason: this.reason, detail: this.message })
  }
}
