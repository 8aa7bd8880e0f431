/** Thrown for what cannot be asked yet, because etcd or the reader of the control plane is being started. */
export class NotReady extends Error {}
